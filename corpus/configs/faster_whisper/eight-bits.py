from faster_whisper import WhisperModel

model = WhisperModel("medium", device="cuda", compute_type="int8_float16")
segments, info = model.transcribe("talk.mp3", beam_size=1)
