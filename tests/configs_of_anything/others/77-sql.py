from sqlalchemy import create_engine

engine = create_engine(url, pool_size=20, max_overflow=10)
CHUNK = 1000
EPOCH = 1609459200

def since(epoch=EPOCH):
    return epoch // 60
