"""Needs: transformers. Models made from small configurations, their losses, gradients and generated tokens."""

import torch
import transformers as t
from fill import numbers

torch.manual_seed(0)
ids = torch.arange(14).reshape(2, 7)
small = {"vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
text = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, **small}


def show(model, generate=False, **inputs):
    model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(numbers(*parameter.shape, low=-0.3, high=0.3))
    result = model(**inputs)
    scores = result.logits if "logits" in result else result[0]
    loss = result.loss if result.get("loss") is not None else scores.square().mean()
    loss.backward()
    total = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    print(type(model).__name__, tuple(scores.shape), f"{loss.item():.8f}", f"{total:.7g}", flush=True)
    if generate:
        mask = torch.ones_like(ids[:, :3])
        for options in ({"do_sample": False}, {"num_beams": 2}):
            print(model.generate(ids[:, :3], attention_mask=mask, max_new_tokens=5, **options).tolist(), flush=True)


show(t.BertForSequenceClassification(t.BertConfig(**text)), input_ids=ids, labels=torch.tensor([0, 1]))
show(t.BertForMaskedLM(t.BertConfig(**text)), input_ids=ids, labels=ids, attention_mask=(ids > 0).long())
show(t.RobertaForTokenClassification(t.RobertaConfig(**text)), input_ids=ids, labels=ids % 2)
show(t.DistilBertModel(t.DistilBertConfig(dim=32, n_layers=2, n_heads=2, hidden_dim=64, **small)), input_ids=ids)
show(t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=2, n_head=2, **small)), True, input_ids=ids, labels=ids)
show(t.LlamaForCausalLM(t.LlamaConfig(num_key_value_heads=2, **text)), True, input_ids=ids, labels=ids)
show(
    t.MistralForCausalLM(t.MistralConfig(num_key_value_heads=2, sliding_window=4, **text)),
    True,
    input_ids=ids,
    labels=ids,
)
show(t.Qwen2ForCausalLM(t.Qwen2Config(num_key_value_heads=2, **text)), input_ids=ids, labels=ids)
show(t.GemmaForCausalLM(t.GemmaConfig(num_key_value_heads=2, head_dim=8, **text)), input_ids=ids, labels=ids)
show(t.PhiForCausalLM(t.PhiConfig(**text)), input_ids=ids, labels=ids)
five = t.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=100, decoder_start_token_id=0)
show(t.T5ForConditionalGeneration(five), input_ids=ids, labels=ids)
bart = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
show(
    t.BartForConditionalGeneration(t.BartConfig(encoder_attention_heads=4, decoder_attention_heads=4, **bart, **small)),
    input_ids=ids,
    labels=ids,
)
