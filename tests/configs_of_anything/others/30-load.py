from locust import HttpUser, between, task


class Visitor(HttpUser):
    wait_time = between(1, 3)
    batch_size = 10
    num_workers = 2

    @task
    def front(self):
        self.client.get("/")
