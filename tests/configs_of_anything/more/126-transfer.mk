train.build:
	docker image build -t transfer engine/

train.run:
	docker run \
		--gpus all \
		-v ${PWD}/engine:/engine \
		transfer \
		python train_model.py \
			--epochs 40 \
			--split 0.3 \
			--batch-size 384 \
			--model-path out.tf
