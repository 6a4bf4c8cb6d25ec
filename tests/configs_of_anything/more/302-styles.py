import argparse

def parse_train_arguments(args=None, description='train'):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('data_path', action="store")
    parser.add_argument('-i', '--image_size', type=int, help='image size', default='256')
    parser.add_argument('-n', '--epochs', type=int, help='epochs', default='10')
    parser.add_argument('-b', '--batch_size', type=int, help='batch size', default='16')
    parser.add_argument('-l', '--learning_rate', type=float, default='1e-4')
    return parser.parse_args(args)
