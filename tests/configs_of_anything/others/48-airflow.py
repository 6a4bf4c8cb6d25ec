from airflow import DAG
dag = DAG("etl", schedule="@daily")
BATCH_SIZE = 500
NUM_WORKERS = 4
MAX_LENGTH = 255
