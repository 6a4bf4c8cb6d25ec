./db_bench --benchmarks=fillseq --num=1000000 --value_size=100 --threads=8 --batch_size=100 --cache_size=1073741824
