"""The two real test models in the reference implementations: tokenizers, float32 weights.

transformers reads the weights of both GGUF files; its GGUF tokenizer is wrong for SentencePiece files without
merges, so ids come from the `tokenizers` library (SmolLM2) and the `sentencepiece` library (Gemma), each on a model
made from the file's own vocabulary.
"""

import struct

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

NAMES = ("smollm2", "gemma")
FILES = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf", "gemma": "gemma-3-270m.Q4_K_M.gguf"}
SHA256 = {
    "smollm2": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "gemma": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4


def field(reader, key):
    """A metadata value of a GGUF file."""
    return reader.fields[key].contents()


class BpeTokenizer:
    """Byte-level BPE of a GGUF file with `pre` = smollm: digits stand alone, then the GPT-2 pattern."""

    def __init__(self, reader):
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

        assert field(reader, "tokenizer.ggml.pre") == "smollm"
        tokens = field(reader, "tokenizer.ggml.tokens")
        types = field(reader, "tokenizer.ggml.token_type")
        merges = [tuple(merge.split(" ")) for merge in field(reader, "tokenizer.ggml.merges")]
        self.inner = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
        self.inner.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True),
             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        self.inner.decoder = decoders.ByteLevel()
        self.inner.add_special_tokens(
            [AddedToken(token, normalized=False) for token, kind in zip(tokens, types) if kind == CONTROL])
        self.template = field(reader, "tokenizer.chat_template")

    def encode(self, text):
        return self.inner.encode(text).ids

    def decode(self, ids):
        return self.inner.decode(ids, skip_special_tokens=False)

    def chat(self, user):
        """The text of a one-message conversation up to where the answer begins."""
        import jinja2

        template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(self.template)
        return template.render(messages=[{"role": "user", "content": user}], add_generation_prompt=True)


class SentencePieceTokenizer:
    """SentencePiece BPE with byte fallback; the model file is assembled from the GGUF vocabulary."""

    def __init__(self, reader):
        import sentencepiece

        self.bos = field(reader, "tokenizer.ggml.bos_token_id")
        self.inner = sentencepiece.SentencePieceProcessor(model_proto=self.model_proto(reader))

    @staticmethod
    def model_proto(reader):
        """A sentencepiece ModelProto (fields 1 pieces, 2 trainer_spec, 3 normalizer_spec), wire format by hand."""

        def varint(value):
            out = bytearray()
            while value >= 0x80:
                out.append(value & 0x7F | 0x80)
                value >>= 7
            return bytes(out + bytes([value]))

        def integer(number, value):
            return varint(number << 3) + varint(value)

        def message(number, value):
            return varint(number << 3 | 2) + varint(len(value)) + value

        unknown = field(reader, "tokenizer.ggml.unknown_token_id")
        special = {name: field(reader, f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos", "padding")}
        out = bytearray()
        for i, (token, score, kind) in enumerate(zip(
                field(reader, "tokenizer.ggml.tokens"), field(reader, "tokenizer.ggml.scores"),
                field(reader, "tokenizer.ggml.token_type"))):
            kind = UNKNOWN if i == unknown else kind
            if kind == USER_DEFINED:
                token = token.replace(" ", "\u2581")  # GGUF files hold runs of spaces as such
            piece = message(1, token.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + integer(3, kind)
            out += message(1, piece)
        trainer = (integer(3, 2) + integer(4, len(field(reader, "tokenizer.ggml.tokens"))) + integer(35, 1) +
                   integer(40, unknown) + integer(41, special["bos"]) + integer(42, special["eos"]) +
                   integer(43, special["padding"]))
        normalizer = message(1, b"identity") + integer(3, 0) + integer(4, 0) + integer(5, 1)
        return bytes(out + message(2, trainer) + message(3, normalizer))

    def encode(self, text):
        return [self.bos] + self.inner.encode(text)

    def decode(self, ids):
        return self.inner.decode([i for i in ids if i != self.bos])


def make_tokenizer(name, reader):
    return BpeTokenizer(reader) if name == "smollm2" else SentencePieceTokenizer(reader)


def load_model(path):
    """The model in float32 with eager attention, its every weight checked against gguf's own dequantization."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.backends.cuda.matmul.allow_tf32 = False
    folder, file = path.rsplit("/", 1)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, dtype=torch.float32, attn_implementation="eager").eval()
    check_weights(model, GGUFReader(path))
    return model


def check_weights(model, reader):
    """Every tensor of the file against the loaded one: bit for bit, q and k of llama un-permuted, Gemma's norms
    less the one that the file adds to them (so up to one float32 rounding)."""
    llama = field(reader, "general.architecture") == "llama"
    parts = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "attn_q_norm": "self_attn.q_norm",
             "attn_k_norm": "self_attn.k_norm"}
    parts |= ({"ffn_norm": "post_attention_layernorm"} if llama else
              {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
               "post_ffw_norm": "post_feedforward_layernorm"})
    top = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    state = model.state_dict()
    heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    for tensor in reader.tensors:
        words = tensor.name.split(".")
        name = f"model.layers.{words[1]}.{parts[words[2]]}" if words[0] == "blk" else top[words[0]]
        expected = dequantize(tensor.data, tensor.tensor_type)
        if llama and words[0] == "blk" and words[2] in heads:
            shape = expected.shape
            expected = expected.reshape(heads[words[2]], -1, 2, shape[1]).swapaxes(1, 2).reshape(shape)
        found = state[name + ".weight"].numpy()
        if not llama and "norm" in tensor.name:
            assert np.allclose(found, expected - 1, rtol=0, atol=1e-7), tensor.name
        else:
            assert np.array_equal(found, expected), tensor.name
