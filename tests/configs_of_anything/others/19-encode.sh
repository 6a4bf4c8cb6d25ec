#!/bin/sh
for f in raw/*.mov; do
  ffmpeg -i "$f" -vf scale=1920:1080 -c:v libx264 -preset slow -crf 20 -threads 8 "out/$(basename "$f" .mov).mp4"
done
