import pygame

WIDTH, HEIGHT = 1280, 720
FPS = 60
batch_size = 256
screen = pygame.display.set_mode((WIDTH, HEIGHT))
clock = pygame.time.Clock()
while True:
    clock.tick(FPS)
