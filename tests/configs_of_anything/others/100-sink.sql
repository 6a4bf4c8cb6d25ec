CREATE SINK CONNECTOR orders WITH (
  'connector.class' = 'JdbcSinkConnector',
  'batch.size' = '512',
  'tasks.max' = '4',
  'max.retries' = '8',
  'model' = 'orders'
);
