CC=gcc
CFLAGS=-O2
all:
	$(CC) $(CFLAGS) -o a a.c
	./a --threads 8 --size 1024
