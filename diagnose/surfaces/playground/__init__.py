"""What people try out: a page of the answer, settings that are turned, and the job of the page that runs in a browser."""
