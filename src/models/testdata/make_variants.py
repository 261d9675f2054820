"""Reference logits of forms of the families that the fixtures do not show: optional norms, other layouts, rope kinds.

Weights are a function of tensor name and element index (see `weights`), so only configs and logits are stored; the
test fills the same weights. Usage: make_variants.py > variants.json   (transformers 5.17, torch 2.11, on a CPU)
"""

import json
import sys

import numpy
import torch
from transformers import AutoConfig, AutoModelForCausalLM

BASE = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=256)
GPT2 = dict(vocab_size=96, n_embd=32, n_inner=48, n_layer=3, n_head=4, n_positions=64)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
SHORT = [1.0, 1.1, 1.3, 1.8]
LONG = [1.0, 2.0, 4.0, 9.0]

VARIANTS = {
    "llama_linear": dict(BASE, model_type="llama", rope_theta=10000.0, rope_scaling=dict(type="linear", factor=4.0)),
    "llama_yarn": dict(BASE, model_type="llama", rope_theta=5000.0,
                       rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
    "llama_old_llama3": dict(BASE, model_type="llama", rope_theta=500000.0, rope_scaling=LLAMA3),
    "llama_head_dim": dict(BASE, model_type="llama", head_dim=12, num_key_value_heads=None),
    "mistral_full": dict(BASE, model_type="mistral", sliding_window=None, head_dim=16),
    "qwen2_windows": dict(BASE, model_type="qwen2", use_sliding_window=True, sliding_window=6, max_window_layers=1),
    "qwen3_bias": dict(BASE, model_type="qwen3", head_dim=16, attention_bias=True, tie_word_embeddings=True),
    "gemma3_old_keys": dict(BASE, model_type="gemma3_text", head_dim=16, sliding_window=6, sliding_window_pattern=3,
                            rope_theta=1000000.0, rope_local_base_freq=10000.0, query_pre_attn_scalar=24,
                            rope_scaling=dict(rope_type="linear", factor=8.0)),
    "phi3_longrope": dict(BASE, model_type="phi3", rope_theta=10000.0, original_max_position_embeddings=64,
                          sliding_window=None, pad_token_id=0,
                          rope_scaling=dict(type="longrope", short_factor=SHORT, long_factor=LONG)),
    "smollm3_interval": dict(BASE, model_type="smollm3", no_rope_layer_interval=2, pad_token_id=0),
    "olmo_clip": dict(BASE, model_type="olmo", clip_qkv=0.4),
    "olmo3_scaled": dict(BASE, model_type="olmo3", sliding_window=6, rope_theta=500000.0,
                         layer_types=["sliding_attention", "sliding_attention", "full_attention"],
                         rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
    "cohere_plain": dict(BASE, model_type="cohere", use_qk_norm=False, attention_bias=True),
    "exaone4_full": dict(BASE, model_type="exaone4", sliding_window=None, head_dim=8,
                         layer_types=["full_attention"] * 3),
    "hunyuan_alpha": dict(BASE, model_type="hunyuan_v1_dense", head_dim=8, rope_theta=10000.0,
                          rope_scaling=dict(type="dynamic", alpha=50.0, factor=1.0)),
    "stablelm_norms": dict(BASE, model_type="stablelm", qk_layernorm=True, use_parallel_residual=True,
                           use_qkv_bias=True, partial_rotary_factor=0.5),
    "phi_norms": dict(BASE, model_type="phi", qk_layernorm=True, num_key_value_heads=4),
    "starcoder2_full": dict(BASE, model_type="starcoder2", use_bias=False, sliding_window=None),
    "gpt2_scaled": dict(GPT2, model_type="gpt2", scale_attn_by_inverse_layer_idx=True),
    "gpt_bigcode_heads": dict(GPT2, model_type="gpt_bigcode", multi_query=False),
    "gpt_neox_sequential": dict(BASE, model_type="gpt_neox", use_parallel_residual=False, rotary_pct=0.5),
    "gpt_neox_tied": dict(BASE, model_type="gpt_neox", tie_word_embeddings=True, attention_bias=False),
}


def weights(name, count, columns, dimensions):
    """splitmix64 of FNV-1a(name) + index; uniform in [-1, 1), scaled by what the tensor is."""
    mask = (1 << 64) - 1
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & mask
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    u = (z >> numpy.uint64(40)).astype(numpy.float64) / float(1 << 23) - 1.0
    if dimensions > 1:
        return u * (1.7 / numpy.sqrt(columns))
    return u * 0.2 if name.endswith("bias") else 1.0 + u * 0.25


def main():
    torch.manual_seed(0)
    ids = [(7 * i * i + 3 * i + 5) % 96 for i in range(24)]
    out = []
    for name, keys in VARIANTS.items():
        keys = dict(keys)
        config = AutoConfig.for_model(**keys)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
        shapes = {}
        with torch.no_grad():
            for tensor, value in model.named_parameters():  # a tied head appears once, as the embedding
                columns = value.shape[-1] if value.dim() > 1 else 1
                filled = weights(tensor, value.numel(), columns, value.dim())
                value.copy_(torch.from_numpy(filled.astype(numpy.float32)).reshape(value.shape))
                shapes[tensor] = list(value.shape)
            logits = model(torch.tensor([ids]), use_cache=False).logits[0]
        picked = [round(float(x), 6) for x in logits[[9, 23]].flatten()]
        print(f"{name}: spread {logits.std():.2f}", file=sys.stderr)
        out.append(dict(name=name, config=keys, tensors=shapes, input_ids=ids, rows=[9, 23], logits=picked))
    print("[\n" + ",\n".join(json.dumps(entry) for entry in out) + "\n]")


main()
