for f in *.png; do convert $f -resize 512x512 -quality 90 out/$f; done
