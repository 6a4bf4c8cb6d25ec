pub const SLOTS_PER_EPOCH: u64 = 64;
pub const TARGET_BATCH_SIZE: u64 = 16;
pub const EPOCHS_PER_PERIOD: u64 = 128;
pub const MAX_WORKERS: u64 = 8;
