import { z } from 'zod';
import { meaningOf, type ProviderTool, providerTools } from './provider-tool-names.ts';

const ProviderToolName = z.enum(providerTools as [ProviderTool, ...ProviderTool[]]).meta({
  id: 'ProviderTool',
  description: `Actions of a model provider outside of the sandbox: ${providerTools.map((name) => `\`${name}\` ${meaningOf(name)}`).join('; ')}`,
});

/** Provider tools that the runs of an environment may use. */
export const ProviderTools = z
  .array(ProviderToolName)
  .max(providerTools.length)
  .describe(
    'What model providers may do outside of the sandbox on behalf of runs. Absent or empty: nothing, and such requests get 403. It reaches the internet even where `network` allows no host, and its price counts',
  );
