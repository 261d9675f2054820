"""Writes a tiny model with random weights and SmolLM2's tokenizer, for tests of the server that need no sense.

    python make_tiny_model.py SMOLLM2.gguf OUT.gguf

Two layers of width 64, a context of 131,072 tokens, and a chat template that knows tools and reasoning (ChatML).
"""

import sys

import gguf
import numpy

TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- '# Tools\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + tool | tojson }}{%- endfor %}
{{- '\\n</tools>\\nAnswer calls as <tool_call>{"name": ..., "arguments": ...}</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if message.reasoning_content %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
{%- if message.content or not loop.first %}{{- '\\n' }}{%- endif %}
{{- '<tool_call>\\n' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson + '\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif not (message.role == 'system' and loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

WIDTH, HIDDEN, HEADS, KV_HEADS, LAYERS = 64, 128, 4, 2, 2


def main(source, out):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(out, "llama")
    tokens = reader.fields["tokenizer.ggml.tokens"]
    merges = reader.fields["tokenizer.ggml.merges"]
    types = reader.fields["tokenizer.ggml.token_type"]
    text = lambda field: [bytes(field.parts[index]).decode("utf-8") for index in field.data]
    number = lambda key: int(reader.fields[key].parts[-1][0])
    vocabulary = text(tokens)
    writer.add_block_count(LAYERS)
    writer.add_context_length(131072)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(100000.0)
    writer.add_vocab_size(len(vocabulary))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(bytes(reader.fields["tokenizer.ggml.pre"].parts[-1]).decode())
    writer.add_token_list(vocabulary)
    writer.add_token_merges(text(merges))
    writer.add_token_types([int(types.parts[index][0]) for index in types.data])
    writer.add_bos_token_id(number("tokenizer.ggml.bos_token_id"))
    writer.add_eos_token_id(number("tokenizer.ggml.eos_token_id"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    random = numpy.random.default_rng(1)
    def add(name, *shape, scale=None):
        values = random.standard_normal(shape) * (scale if scale is not None else shape[-1] ** -0.5)
        writer.add_tensor(name, values.astype(numpy.float16 if len(shape) > 1 else numpy.float32))

    add("token_embd.weight", len(vocabulary), WIDTH, scale=0.3)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        writer.add_tensor(prefix + "attn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        writer.add_tensor(prefix + "ffn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        add(prefix + "attn_q.weight", WIDTH, WIDTH)
        add(prefix + "attn_k.weight", WIDTH * KV_HEADS // HEADS, WIDTH)
        add(prefix + "attn_v.weight", WIDTH * KV_HEADS // HEADS, WIDTH)
        add(prefix + "attn_output.weight", WIDTH, WIDTH)
        add(prefix + "ffn_gate.weight", HIDDEN, WIDTH)
        add(prefix + "ffn_up.weight", HIDDEN, WIDTH)
        add(prefix + "ffn_down.weight", WIDTH, HIDDEN)
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
