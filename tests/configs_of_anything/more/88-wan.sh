python generate.py --task t2v-14B --size 1280*720 --ckpt_dir ./Wan2.1-T2V-14B --offload_model True --t5_cpu --frame_num 81 --sample_steps 50 --sample_guide_scale 5 --prompt "Two cats boxing"
