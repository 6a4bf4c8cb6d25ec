whisperx talk.wav --model large-v2 --batch_size 4 --compute_type int8 --diarize
