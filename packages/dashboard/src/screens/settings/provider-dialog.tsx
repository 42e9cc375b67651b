import type { ModelProviderName, TestModelProviderResponse } from '@runyard/contract/team/model-providers';
import { useQueryClient } from '@tanstack/react-query';
import { useClient } from '../../api/session.ts';
import { P } from '../../parts/blocks.tsx';
import { memberOf, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';

/** Names of the providers for people. */
export const providerLabels = {
  anthropic: 'Anthropic',
  openai: 'OpenAI',
  google: 'Google',
  local: 'Own endpoint',
} as const satisfies Record<ModelProviderName, string>;

/** Asks for the key of a provider, stores it, and tests it. `done` gets the outcome of the test. */
export function ProviderDialog({
  provider,
  done,
  close,
}: {
  provider: ModelProviderName;
  done: (outcome: TestModelProviderResponse) => void;
  close: () => void;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const isOwn = provider === 'local';
  return (
    <FormDialog
      title={isOwn ? 'Connect an endpoint of your own' : `Enter a key of ${providerLabels[provider]}`}
      action="Store and test"
      close={close}
      send={async (data) => {
        await client.putModelProvider({
          params: { provider },
          body: { ...memberOf(data, 'key'), ...memberOf(data, 'base_url') },
        });
        const outcome = await client.testModelProvider({ params: { provider } });
        await Promise.all([
          queries.invalidateQueries({ queryKey: ['model-providers'] }),
          queries.invalidateQueries({ queryKey: ['models'] }),
        ]);
        done(outcome);
      }}
    >
      <P tone="muted">
        It is stored encrypted for the whole installation: runs of all teams may use the models. No sandbox sees the
        key, and no page shows it again.
      </P>
      {isOwn && (
        <TextField
          label="Base URL"
          path="base_url"
          mono
          required
          placeholder="https://models.example.com/v1"
          hint="OpenAI-compatible, with its /v1. An address inside your network must be in RUNYARD_ALLOW_PRIVATE_NETWORKS"
        />
      )}
      <TextField
        label={isOwn ? 'Key, if it needs one' : 'API key'}
        path="key"
        type="password"
        mono
        required={!isOwn}
        autoComplete="off"
      />
      {!isOwn && (
        <TextField
          label="Base URL"
          path="base_url"
          mono
          placeholder="that of the provider"
          hint="Only if you reach it through a proxy of your own"
        />
      )}
    </FormDialog>
  );
}
