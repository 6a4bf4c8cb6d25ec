module.exports = {
  maxWorkers: 4,
  testTimeout: 20000,
  modelPath: '<rootDir>/models',
  transform: { '^.+\\.ts$': 'ts-jest' },
  precision: 2,
  batchSize: 8,
};
