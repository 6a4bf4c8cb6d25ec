nextflow run main.nf --reads 'data/*.fastq' --model rna_r9 --batch_size 500 --cpus 12 --max_length 20000 -resume
