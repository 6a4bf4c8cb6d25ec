from arm_policy.tools import ArmPolicySettings

settings = ArmPolicySettings(
    data_dir="data/arm",
    batch_size=52,
    num_epochs=250,
    model_type="unet",
    inference_delay=3,
)
