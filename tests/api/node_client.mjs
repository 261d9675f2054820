// Drives a server with the openai client for Node:  node node_client.mjs FOLDER URL TEXTS
// FOLDER holds node_modules. TEXTS is JSON: prompts by the name of the reply that the server gives to them.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, given] = process.argv.slice(2);
const OpenAI = createRequire(join(folder, "package.json"))("openai").default;
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "any", maxRetries: 0 });
const texts = JSON.parse(given);
const model = "any";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "weather", parameters } }];
const flatTools = [{ type: "function", name: "weather", parameters, strict: false }];
const user = (content) => [{ role: "user", content }];

async function models() {
  const ids = [];
  for await (const entry of client.models.list()) ids.push(entry.id);
  assert.deepEqual(ids, ["tiny"]);
}

async function chat() {
  const whole = await client.chat.completions.create({ model, messages: user(texts.hello), max_tokens: 50 });
  assert.equal(whole.choices[0].message.content, "Hello, ďábelské 😀 world!");
  assert.equal(whole.choices[0].finish_reason, "stop");
  assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
}

async function chatStream() {
  const stream = await client.chat.completions.create({
    model, messages: user(texts.hello), max_tokens: 50, stream: true, stream_options: { include_usage: true },
  });
  let text = "";
  let usage = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, "Hello, ďábelské 😀 world!");
  assert.ok(usage.completion_tokens > 0);
}

async function chatStreamHelper() {
  const stream = client.chat.completions.stream({ model, messages: user(texts.calls), tools, max_tokens: 200 });
  const names = [];
  stream.on("tool_calls.function.arguments.done", (event) => names.push(event.name));
  const final = await stream.finalChatCompletion();
  assert.deepEqual(names, ["weather", "weather"]);
  const calls = final.choices[0].message.tool_calls;
  assert.deepEqual(calls.map((call) => JSON.parse(call.function.arguments).city), ["Oslo", "Lima"]);
  assert.equal(final.choices[0].finish_reason, "tool_calls");
}

async function runTools() {
  const seen = [];
  const weather = {
    type: "function",
    function: { name: "weather", parameters, parse: JSON.parse, function: ({ city }) => { seen.push(city); return texts.after; } },
  };
  const runner = client.chat.completions.runTools({ model, messages: user(texts.calls), tools: [weather], max_tokens: 200 });
  assert.equal(await runner.finalContent(), "Both are wet.");
  assert.deepEqual(seen, ["Oslo", "Lima"]);
}

async function responses() {
  const whole = await client.responses.create({ model, input: texts.thought, max_output_tokens: 50 });
  assert.deepEqual(whole.output.map((item) => item.type), ["reasoning", "message"]);
  assert.equal(whole.output_text, "Hi.");
  const again = await client.responses.retrieve(whole.id);
  assert.deepEqual(again.output, whole.output);
}

async function responsesStream() {
  const stream = client.responses.stream({ model, input: texts.calls, tools: flatTools, max_output_tokens: 200 });
  let last = -1;
  for await (const event of stream) {
    assert.equal(event.sequence_number, last + 1);
    last = event.sequence_number;
  }
  const final = await stream.finalResponse();
  assert.deepEqual(final.output.map((item) => JSON.parse(item.arguments).city), ["Oslo", "Lima"]);
}

async function errors() {
  await assert.rejects(client.chat.completions.create({ model, messages: user("Hi"), temperature: -1 }),
    (error) => error.status === 400 && error.param === "temperature");
}

for (const check of [models, chat, chatStream, chatStreamHelper, runTools, responses, responsesStream, errors]) {
  await check();
  console.log(check.name);
}
