/**
 * Asks the model of the run with the Vercel AI SDK. The providers of the SDK read key and address from environment variables, but two
 * of the providers have no variable for the address.
 */
import { text } from 'node:stream/consumers';
import { anthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { openai } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, type LanguageModel, streamText } from 'ai';

const { RUNYARD_MODEL: name = '', RUNYARD_MODEL_BASE_URL: baseURL = '', RUNYARD_MODEL_PROTOCOL = '' } = process.env;
const { RUNYARD_MODEL_KEY: apiKey = '' } = process.env;

const models: Readonly<Record<string, () => LanguageModel>> = {
  anthropic: () => anthropic(name),
  'openai-responses': () => openai(name),
  google: () => createGoogle({ baseURL })(name),
  'openai-compatible': () => createOpenAICompatible({ name: 'local', baseURL, apiKey })(name),
};
const model = models[RUNYARD_MODEL_PROTOCOL]?.();
if (model === undefined) throw new Error(`no client for ${RUNYARD_MODEL_PROTOCOL}`);
const prompt = await text(process.stdin);
console.log(JSON.stringify(['ai', (await generateText({ model, prompt, maxRetries: 0 })).text]));
console.log(JSON.stringify(['ai stream', await streamText({ model, prompt, maxRetries: 0 }).text]));
