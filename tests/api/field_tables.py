"""Valid requests of every route that takes JSON, with every field the routes know: what field_fuzz.py mutates."""

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string", "maxLength": 8}, "n": {"type": "integer"}},
              "required": ["path"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "read", "description": "Reads a file", "parameters": PARAMETERS,
                                         "strict": True}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": PARAMETERS}}

SAMPLING = {
    "temperature": 0.7, "dynatemp_range": 0.1, "dynatemp_exponent": 1.0, "top_k": 40, "top_p": 0.9, "min_p": 0.05,
    "typical_p": 0.95, "typ_p": 0.95, "top_n_sigma": 1.0, "xtc_probability": 0.1, "xtc_threshold": 0.1,
    "repeat_penalty": 1.1, "repetition_penalty": 1.1, "frequency_penalty": 0.1, "presence_penalty": 0.1,
    "dry_multiplier": 0.5, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 64,
    "dry_sequence_breakers": ["\n", ":"], "mirostat": 0, "mirostat_tau": 5.0, "mirostat_eta": 0.1,
    "adaptive_target": 0.5, "adaptive_decay": 0.9, "repeat_last_n": 64, "repetition_context_size": 64,
    "samplers": ["top_k", "temperature"], "p_less": False, "seed": 1, "logit_bias": {"17": -1.5, " the": 2},
    "language_bias": {"ja": -1, "ko": "-inf"},
    "stop": ["STOP", "\n\n\n"], "stop_sequences": ["END"], "ignore_eos": False, "max_pattern_size": 8,
    "min_pattern_size": 1, "min_count": 4, "cache_prompt": True, "prompt_cache_key": "k", "priority": 1,
    "thinking_budget": 4, "thinking_token_budget": 4, "reasoning_budget_tokens": 4, "thinking_budget_tokens": 4,
}

CHAT = {
    "model": "tiny", "max_tokens": 2, "max_completion_tokens": 2, "stream": False,
    "stream_options": {"include_usage": True}, "n": 1, "tools": [TOOL], "tool_choice": "auto",
    "parallel_tool_calls": True, "logprobs": True, "top_logprobs": 2, "reasoning_effort": "low",
    "reasoning_control": True,
    "enable_thinking": True, "chat_template_kwargs": {"enable_thinking": True, "other": [1, {"a": None}]},
    "continue_final_message": True, "user": "u", "store": False, "metadata": {"a": "b"}, "service_tier": "auto",
    "messages": [
        {"role": "system", "content": "Be terse."},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Read a."}]},
        {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "text of a"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "reasoning": "Hm."},
        {"role": "user", "content": "Go on."},
    ],
}
CHAT_FORMATS = [
    {}, {"response_format": FORMAT}, {"response_format": {"type": "json_object", "schema": PARAMETERS}},
    {"json_schema": PARAMETERS}, {"grammar": "root ::= \"a\" | [0-9]{1,3} | \"(\" root \")\""},
    {"guided_regex": "[a-f]{1,4}(x|y)*"}, {"guided_lark": "start: \"a\" | \"b\" start"},
    {"tool_choice": "required"}, {"tool_choice": {"type": "function", "function": {"name": "read"}}},
    {"extra_body": {"top_k": 3, "min_p": 0.1}},
]
COMPLETIONS = {"model": "tiny", "prompt": "Once", "suffix": "", "max_tokens": 2, "n": 1, "best_of": 1, "echo": False,
               "logprobs": 1, "stream": False, "stream_options": {"include_usage": False}, "user": "u"}
COMPLETIONS_VARIANTS = [{"echo": True}, {"echo": True, "logprobs": 0, "max_tokens": 0}]
PROMPTS = ["Once", ["Once", "Twice"], [5, 6, 7], [[5, 6], [7]], ["Once", [7, 8]]]
RESPONSES = {
    "model": "tiny", "max_output_tokens": 2, "instructions": "Be terse.", "store": True, "stream": False,
    "stream_options": {"include_usage": False}, "max_tool_calls": 2, "parallel_tool_calls": True,
    "metadata": {"a": "b"}, "truncation": "disabled", "include": ["reasoning.encrypted_content"], "user": "u",
    "service_tier": "auto", "background": False, "top_logprobs": 0, "client_metadata": {"a": 1},
    "enable_thinking": True, "chat_template_kwargs": {"a": 1}, "reasoning": {"effort": "low", "summary": "auto"},
    "tools": [{"type": "function", "name": "read", "description": "d", "parameters": PARAMETERS, "strict": False},
              {"type": "web_search"},
              {"type": "namespace", "name": "ns", "description": "d",
               "tools": [{"type": "function", "name": "write", "parameters": PARAMETERS}]}],
    "tool_choice": "auto", "text": {"format": {"type": "text"}, "verbosity": "low"},
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read a."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
         "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{\"path\":\"a\"}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "text"},
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "text"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
        {"role": "developer", "content": "Note."},
    ],
}
RESPONSES_VARIANTS = [
    {}, {"text": {"format": {"type": "json_schema", "name": "s", "schema": PARAMETERS}}}, {"input": "Hello"},
    {"text": {"format": {"type": "json_object"}}}, {"tool_choice": {"type": "function", "name": "read"}},
    {"conversation": "conv_1"}, {"conversation": {"id": "conv_2"}},
    {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
]
MESSAGES = {
    "model": "tiny", "max_tokens": 2, "stream": False, "metadata": {"user_id": "u"},
    "system": [{"type": "text", "text": "Be terse.", "cache_control": {"type": "ephemeral"}}],
    "thinking": {"type": "enabled", "budget_tokens": 4, "display": "summarized"},
    "tools": [{"name": "read", "description": "d", "input_schema": PARAMETERS},
              {"type": "custom", "name": "write", "input_schema": PARAMETERS},
              {"type": "web_search_20250305", "name": "web_search"}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "output_config": {"effort": "low"},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Read a."}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"},
                                          {"type": "text", "text": "Yes."},
                                          {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "text", "is_error": False},
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "text"}]},
            {"type": "text", "text": "Go on."}]},
        {"role": "system", "content": "A reminder."},
        {"role": "assistant", "content": "Well"},
    ],
}
MESSAGES_VARIANTS = [
    {}, {"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "tool", "name": "read"}}, {"system": "Be terse."},
    {"output_config": {"format": {"type": "json_schema", "schema": PARAMETERS}}},
    {"output_format": {"type": "json_schema", "schema": PARAMETERS}},
    {"thinking": {"type": "disabled"}}, {"messages": [{"role": "user", "content": "Hello"}]}, {"max_tokens": 0},
]
NATIVE = {
    "prompt": "Once", "n_predict": 2, "stream": False, "n_probs": 2, "id_slot": -1, "n_keep": 0, "n_discard": 0,
    "n_indent": 0, "t_max_predict_ms": 0, "n_cmpl": 1, "return_tokens": True, "timings_per_token": True,
    "post_sampling_probs": False, "return_progress": False, "verbose": False, "grammar_lazy": False,
    "response_fields": ["content", "generation_settings/n_predict"], "lora": [], "min_keep": 0, "model": "tiny",
}
NATIVE_VARIANTS = [
    {}, {"prompt": ["Once", "Twice"]}, {"prompt": [5, "Once", 6]}, {"prompt": [[5], [6, "x"]]},
    {"json_schema": PARAMETERS}, {"grammar": "root ::= [a-z]+"}, {"logit_bias": [[17, -1.5], [" the", False]]},
]


class Route:
    """`base` and one of `variants` make a valid body; `shared` adds sampling fields; `envelope` is that of errors."""

    def __init__(self, path, base, variants=({},), shared=True, envelope="openai", valid=200):
        self.path, self.base, self.variants, self.shared = path, base, variants, shared
        self.envelope, self.valid = envelope, valid


ROUTES = [
    Route("/v1/chat/completions", CHAT, CHAT_FORMATS),
    Route("/chat/completions/input_tokens", CHAT, CHAT_FORMATS),
    Route("/v1/completions", COMPLETIONS, [{"prompt": prompt} for prompt in PROMPTS] + COMPLETIONS_VARIANTS),
    Route("/v1/responses", RESPONSES, RESPONSES_VARIANTS, envelope="responses"),
    Route("/responses/input_tokens", RESPONSES, RESPONSES_VARIANTS, envelope="responses"),
    Route("/v1/messages", MESSAGES, MESSAGES_VARIANTS, envelope="anthropic"),
    Route("/v1/messages/count_tokens", MESSAGES, MESSAGES_VARIANTS, envelope="anthropic"),
    Route("/completion", NATIVE, NATIVE_VARIANTS),
    Route("/infill", {"input_prefix": "a", "input_suffix": "b", "prompt": "c", "n_predict": 2,
                      "input_extra": [{"filename": "f", "text": "t"}]}, valid=501),
    Route("/apply-template", CHAT, CHAT_FORMATS, shared=False),
    Route("/tokenize", {"content": "Hello", "add_special": False, "parse_special": True, "with_pieces": True},
          [{}, {"content": ["Hello", 17, "x"]}], shared=False),
    Route("/detokenize", {"tokens": [1, 2, 3]}, shared=False),
    Route("/v1/streams/lookup", {"conversation_ids": ["a", "b"]}, shared=False),
    Route("/v1/chat/completions/control", {"id": "chatcmpl-1", "action": "reasoning_end"}, shared=False),
    Route("/admin/load/cancel", {"cleanup": False}, shared=False),
    Route("/admin/load", {"model": "nobody/nothing", "context_window": 64}, shared=False, valid=501),
]

# Paths that refuse what they are asked by design.
NOT_IMPLEMENTED = ("/infill", "/admin/load", "/props", "/slots/", "/v1/embeddings", "/embeddings", "/embedding",
                   "/v1/rerank", "/rerank", "/v1/reranking", "/reranking")
QUERIES = ["/", "/health", "/v1/models", "/v1/models/{}", "/props", "/slots?fail_on_no_slot={}", "/metrics",
           "/lora-adapters", "/v1/cache/stats", "/v1/stream?conv_id={}", "/v1/stream?conv_id=a&from={}",
           "/rounds?limit={}", "/v1/responses/{}", "/responses/{}", "/v1/responses/{}/cancel", "/slots/{}",
           "/admin/status", "/admin/models", "/admin/integrations", "/machine", "/doctor", "/{}", "/{}/{}", "/v1/{}"]
