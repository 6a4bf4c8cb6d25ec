from faster_whisper import BatchedInferencePipeline, WhisperModel

model = WhisperModel("large-v3", device="cuda", compute_type="float16")
pipeline = BatchedInferencePipeline(model=model)
segments, info = pipeline.transcribe("talk.mp3", batch_size=16, beam_size=5)
