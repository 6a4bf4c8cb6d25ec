#============ TRAINING ============
local batch_size = 24;  # adjust to the card
local num_epochs = 60;
local bert = "bert-large-cased";
local use_amp = true;
{
  dataset_reader: { type: 'amconll', overwrite_formalism: 'AMR', },
  iterator: { type: 'same_formalism', batch_size: batch_size, formalisms: ['AMR'], },
  model: { type: 'graph_parser', text_embedder: { pretrained_model: bert }, },
  trainer: { num_epochs: num_epochs, cuda_device: 0, use_amp: use_amp, num_gradient_accumulation_steps: 4, optimizer: { type: 'huggingface_adamw', lr: 2e-5 }, },
}
