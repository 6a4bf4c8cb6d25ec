python generate.py --task t2v-1.3B --size 480*832 --save_file ./aabb.mp4 --ckpt_dir ./Wan2.1-T2V-1.3B  --offload_model True --t5_cpu --sample_shift 8 --sample_guide_scale 6 --prompt "..."
