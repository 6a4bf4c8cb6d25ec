ARCH := sm_90
BATCH := 16
SEQ := 4096

bench: attn
	./attn --batch $(BATCH) --seq-len $(SEQ)

attn: attn.cu
	nvcc -arch=$(ARCH) -o attn attn.cu
