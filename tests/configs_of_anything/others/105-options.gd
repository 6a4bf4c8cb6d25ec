extends Node

var resolution = Vector2(1920, 1080)
var batch_size = 32
var max_length = 200
var device = 0
var checkpoint = "swamp"
