import os, time
def run_script(script, args=''):
    cmd = f'torchrun {script} {args}'
    print(cmd)
    os.system(cmd)
if __name__ == '__main__':
    cmd = '--standalone --nnodes=1 --nproc_per_node=2 train.py '\
          '--data-dir /datasets/in1k '\
          '--workers 5 --amp '\
          '--lr 0.2 --lr-sched cosine --momentum 0.9 --batch-size 384 --img-size 288 --epochs 100'
    run_script(cmd)
