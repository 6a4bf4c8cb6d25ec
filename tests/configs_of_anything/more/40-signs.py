import argparse

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Traffic signs")
    parser.add_argument("--bs", "--batch_size", type=int, help="batch size", default=100)
    parser.add_argument("--isize", "--image_size", nargs=2, type=int, help="image size", default=(224, 288))
    parser.add_argument("--epos", "--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--model", type=str, choices=["keras", "vgg16"], default="vgg16")
    args = parser.parse_args()
