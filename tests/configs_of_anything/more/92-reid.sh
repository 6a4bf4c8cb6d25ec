python train_ctl_model.py \
--config_file="configs/256_resnet50.yml" \
GPU_IDS [0] \
DATASETS.NAMES 'mm' \
SOLVER.IMS_PER_BATCH 24 \
TEST.IMS_PER_BATCH 96 \
SOLVER.BASE_LR 0.00035 \
USE_MIXED_PRECISION False
