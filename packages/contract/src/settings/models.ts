import { absolutePath, credentialUrl, headerSecret, list, type ReadText, type Setting, text } from './setting.ts';

/** Prices in US dollars for a million tokens of input and for a million tokens of output. */
const price: ReadText<{ readonly input: number; readonly output: number }> = (text) => {
  if (!/^\d{1,6}(\.\d{1,6})?\/\d{1,6}(\.\d{1,6})?$/.test(text))
    return { problem: 'must be two prices in US dollars per million tokens, input/output, such as 0.5/2 or 0/0' };
  const [input = 0, output = 0] = text.split('/').map(Number);
  return { value: { input, output } };
};

/** Addresses of language models, and the models that runs may use. */
export const modelSettings = {
  RUNYARD_ANTHROPIC_API_KEY: {
    read: headerSecret,
    description: 'Key for Anthropic models. Stays in the service.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_OPENAI_API_KEY: {
    read: headerSecret,
    description: 'Key for OpenAI models. Stays in the service.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_GOOGLE_API_KEY: {
    read: headerSecret,
    description: 'Key for Google models. Stays in the service.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_ANTHROPIC_BASE_URL: {
    read: credentialUrl,
    default: 'https://api.anthropic.com',
    description: 'URL at which the gateway reaches Anthropic models.',
    usedBy: ['service'],
  },
  RUNYARD_OPENAI_BASE_URL: {
    read: credentialUrl,
    default: 'https://api.openai.com',
    description: 'URL at which the gateway reaches OpenAI models.',
    usedBy: ['service'],
  },
  RUNYARD_GOOGLE_BASE_URL: {
    read: credentialUrl,
    default: 'https://generativelanguage.googleapis.com',
    description: 'URL at which the gateway reaches Google models.',
    usedBy: ['service'],
  },
  RUNYARD_MODEL_BASE_URL: {
    read: credentialUrl,
    description: 'OpenAI-compatible endpoint, with its `/v1`: Ollama, vLLM, llama.cpp, …',
    usedBy: ['service'],
  },
  RUNYARD_MODEL_KEY: {
    read: headerSecret,
    description: 'Key for RUNYARD_MODEL_BASE_URL, if the endpoint needs one.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_MODELS: {
    read: list,
    default: '',
    description:
      'Additional model ids to offer, comma-separated, each `anthropic/…`, `openai/…`, `google/…` or `local/…`.',
    usedBy: ['service'],
  },
  RUNYARD_UNKNOWN_MODEL_PRICE: {
    read: price,
    description:
      'Price of models whose price is unknown, in US dollars per million tokens: `input/output`, such as `0.5/2`; `0/0` if they are free. Absent: their cost is unknown, and a run or a team with a budget cannot use them.',
    usedBy: ['service'],
  },
  RUNYARD_MODELS_FILE: {
    read: absolutePath,
    description:
      'YAML or JSON file that adds models to the catalogue, or corrects names, prices and properties of its models (docs/models.md).',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_DEFAULT_MODEL: {
    read: text,
    description: 'Model of runs that name no model. Default: the first configured one, else `runbook`.',
    usedBy: ['service'],
  },
} as const satisfies Record<string, Setting<unknown>>;
