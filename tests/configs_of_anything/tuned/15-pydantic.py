from typing import Literal

from pydantic import BaseModel, Field


class TrainSettings(BaseModel):
    """Settings of a fine-tuning of Whisper."""

    model_id: str = "openai/whisper-large-v3"
    batch_size: int = Field(default=6, description="clips per card")
    grad_accum: int = Field(default=512 // 64)
    mixed_precision: Literal["fp16", "bf16"] = Field(default="fp16")
    gradient_checkpointing: bool = True
    learning_rate: float = 1e-5
    warmup_steps: int = 500
    optimizer: str = "AdamW8bit"
    num_workers: int = 7


class EvalSettings(BaseModel):
    batch_size: int = 20
    num_beams: int = 5
