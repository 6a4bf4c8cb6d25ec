SEQDB_PATH=/home/fastMSA/all_full.tsv
MODEL_PATH=/home/Dense-Homolog-Retrieval/Dense-Homolog-Retrieval-main/
OUTPUT_PATH=/home/fastMSA/output
python3 do_embedding.py trainer.ur90_path=$SEQDB_PATH model.ckpt_path=$MODEL_PATH hydra.run.dir=$OUTPUT_PATH
