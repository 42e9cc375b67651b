import type { ModelProviderName, TestModelProviderResponse } from '@runyard/contract/team/model-providers';
import type { ListModelsResponse } from '@runyard/contract/team/models';
import { visibleText } from '@runyard/contract/wire/visible';
import { useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useRef, useState } from 'react';
import { useModels } from '../../api/lists.ts';
import { useTeamRead } from '../../api/read.ts';
import { useClient, useSession } from '../../api/session.ts';
import { P, Quote, Row, Stack, Text, TextLink } from '../../parts/blocks.tsx';
import { Button, ButtonLink } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import styles from './runs.module.css';

const ProviderDialog = lazy(async () => ({
  default: (await import('../settings/provider-dialog.tsx')).ProviderDialog,
}));

const labels = {
  anthropic: 'Anthropic',
  openai: 'OpenAI',
  google: 'Google',
  local: 'Own endpoint',
} as const satisfies Record<ModelProviderName, string>;

/** A prompt for the model `runbook`, which runs the shell blocks in it. */
const shellPrompt = 'Say hello.\n\n```sh\necho "hello from $(uname -s)"\n```\n';
/** A prompt for a language model. */
const agentPrompt =
  'Look around in this sandbox. Which languages and tools are installed here? Write what you find as a short table into report.md, and end with one sentence: what would you build here first?';

/** Guides a new installation to a model, to the first run of an agent, and then to a team and events. */
export function Onboarding() {
  const client = useClient();
  const navigate = useNavigate();
  const [error, setError] = useState<unknown>();
  // One idempotency key for all clicks, so that a double click starts only one run.
  const key = useRef(crypto.randomUUID());
  const workers = useTeamRead(['workers'], (client) => client.listConnectedWorkers({}), { refetchInterval: 3_000 });
  const models = useModels();
  const model = models.data && modelToUse(models.data);
  const ofTeam = workers.data?.workers.length ?? 0;
  const ofService = workers.data?.hosted_workers?.length;
  const hasWorker = ofTeam + (ofService ?? 0) > 0;
  const start = async (prompt: string, modelId: string) => {
    setError(undefined);
    try {
      const created = await client.createRun({
        body: { prompt, config: { model_id: modelId } },
        headers: { 'idempotency-key': `${key.current}-${modelId}`, 'x-oz-api-source': 'WEB_APP' },
      });
      await navigate({ to: '/runs/$runId', params: { runId: created.run_id } });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <div className={styles.onboarding}>
      <Stack gap={2}>
        <h1>Start your first run</h1>
        <P tone="muted">
          This page watches the service: the run opens as soon as it exists. You can do all of it in a terminal.
        </P>
      </Stack>
      <ol>
        <Step number={1} title="A worker is connected" isDone={hasWorker} isNow={!hasWorker}>
          <P tone="muted">
            {ofService !== undefined && `${countText(ofService, 'worker')} of the service. `}
            {hasWorker || ofService !== undefined
              ? `${countText(ofTeam, 'worker')} of this team. `
              : 'The command up starts a worker of this service beside it, which only its operator sees. Workers on other machines of the team: '}
            <TextLink to="/workers">Workers</TextLink>
          </P>
        </Step>
        <Step number={2} title="Add a language model" isDone={model !== undefined} isNow={models.data !== undefined}>
          <ModelStep model={model} />
        </Step>
        <Step number={3} title="Run an agent" isDone={false} isNow={model !== undefined}>
          {model === undefined ? (
            <P tone="muted">
              Without a language model, runs use runbook, which runs the shell blocks of the prompt as they are.
            </P>
          ) : (
            <Quote>{agentPrompt}</Quote>
          )}
          <Row>
            {model !== undefined && (
              <RoleButton needs="member" kind="primary" icon="play" run={() => void start(agentPrompt, model)}>
                Run the agent
              </RoleButton>
            )}
            <RoleButton
              needs="member"
              kind={model === undefined ? 'primary' : undefined}
              run={() => void start(shellPrompt, 'runbook')}
            >
              {model === undefined ? 'Run it now' : 'Run a shell block instead'}
            </RoleButton>
            <ButtonLink to="/runs/new" search={{ prompt: model === undefined ? shellPrompt : agentPrompt }}>
              Change it first
            </ButtonLink>
          </Row>
          <Problem error={error} />
          <CommandBlock command="bin/runyard run examples/hello.md" />
        </Step>
        <Step number={4} title="Bring your team and your events" isDone={false} isNow={false}>
          <Row as="p" wrap>
            <ButtonLink to="/settings/$tab" params={{ tab: 'members' }}>
              Invite a person
            </ButtonLink>
            <ButtonLink to="/factories">Create a webhook</ButtonLink>
            <ButtonLink to="/schedules" search={{ new: 'true' }}>
              Create a schedule
            </ButtonLink>
          </Row>
        </Step>
      </ol>
    </div>
  );
}

/** Returns the language model for the first run: the default, or the first one that can be used. */
function modelToUse({ models, default_model_id: preferred }: ListModelsResponse): string | undefined {
  const usable = models.filter(({ id, disable_reason: reason }) => id !== 'runbook' && reason === undefined);
  return (usable.find(({ id }) => id === preferred) ?? usable[0])?.id;
}

/** Lets an owner of the installation enter the key of a provider, and shows the outcome of its test. */
function ModelStep({ model }: { model: string | undefined }) {
  const { readsInstallation } = useSession();
  const [entering, setEntering] = useState<ModelProviderName | undefined>();
  const [outcome, setOutcome] = useState<TestModelProviderResponse | undefined>();
  return (
    <>
      {model === undefined ? (
        <P tone="muted">
          {readsInstallation
            ? 'Choose your provider and enter its key. It is stored encrypted, and works at once.'
            : 'An owner of the installation enters the key of a provider in the settings.'}
        </P>
      ) : (
        <P tone="muted">{`Runs use ${visibleText(model)}.`}</P>
      )}
      {readsInstallation && model === undefined && (
        <Row wrap>
          {(Object.entries(labels) as [ModelProviderName, string][]).map(([provider, label]) => (
            <Button key={provider} onClick={() => setEntering(provider)}>
              {label}
            </Button>
          ))}
        </Row>
      )}
      {outcome && (
        <P tone={outcome.works ? 'good' : 'bad'} role="status">
          {outcome.message}
        </P>
      )}
      {entering && (
        <Suspense>
          <ProviderDialog provider={entering} done={setOutcome} close={() => setEntering(undefined)} />
        </Suspense>
      )}
    </>
  );
}

function Step({
  number,
  title,
  isDone,
  isNow,
  children,
}: {
  number: number;
  title: string;
  isDone: boolean;
  isNow: boolean;
  children: ReactNode;
}) {
  return (
    <li className={styles.step}>
      <span className={`${styles.numDot} ${isDone ? styles.done : isNow ? styles.now : ''}`}>
        {isDone ? <Icon name="check" small /> : number}
      </span>
      <Text as="h2" tone={isDone || isNow ? undefined : 'dim'}>
        {title}
      </Text>
      <div className={styles.stepBody}>{children}</div>
    </li>
  );
}
