nvcc -O3 -arch=sm_90 -DBLOCK_SIZE=256 -DBATCH=32 -DPRECISION=16 gemv.cu -o gemv
./gemv 4096 4096 32
