from datetime import datetime

from airflow import DAG
from airflow.operators.python import PythonOperator

default_args = {"retries": 2, "batch_size": 500, "max_length": 4000}
with DAG("nightly", start_date=datetime(2024, 1, 1), default_args=default_args, schedule="@daily") as dag:
    PythonOperator(task_id="load", python_callable=print)
