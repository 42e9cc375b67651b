import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useRef, useState } from 'react';
import { useModels } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { CommandBlock } from '../../parts/copy.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

/** A prompt for the model `runbook`, which runs the shell blocks in it. */
const firstPrompt = 'Say hello.\n\n```sh\necho "hello from $(uname -s)"\n```\n';

/** Guides a new installation to its first run, and then to a model, a team and events. */
export function Onboarding() {
  const client = useClient();
  const { team } = useSession();
  const navigate = useNavigate();
  const [error, setError] = useState<unknown>();
  // One idempotency key for all clicks, so that a double click starts only one run.
  const key = useRef(crypto.randomUUID());
  const workers = useQuery({
    queryKey: ['workers', team.uid],
    queryFn: async () => await client.listConnectedWorkers({}),
    refetchInterval: 3_000,
  });
  const models = useModels();
  const hasModel =
    models.data?.models.some(({ id, disable_reason: reason }) => id !== 'runbook' && reason === undefined) ?? false;
  const ofTeam = workers.data?.workers.length ?? 0;
  const ofService = workers.data?.hosted_workers?.length;
  const hasWorker = ofTeam + (ofService ?? 0) > 0;
  const start = async () => {
    setError(undefined);
    try {
      const created = await client.createRun({
        body: { prompt: firstPrompt, config: { model_id: 'runbook' } },
        headers: { 'idempotency-key': key.current, 'x-oz-api-source': 'WEB_APP' },
      });
      await navigate({ to: '/runs/$runId', params: { runId: created.run_id } });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <div className="onb">
      <div className="stack s2">
        <h1>Start your first run</h1>
        <p className="mut">
          This page watches the service: the run opens as soon as it exists. You can do all of it in a terminal.
        </p>
      </div>
      <ol>
        <Step number={1} title="A worker is connected" isDone={hasWorker} isNow={!hasWorker}>
          <p className="mut">
            {ofService !== undefined && `${countText(ofService, 'worker')} of the service. `}
            {hasWorker || ofService !== undefined
              ? `${countText(ofTeam, 'worker')} of this team. `
              : 'The command up starts a worker of this service beside it, which only its operator sees. Workers on other machines of the team: '}
            <Link className="link" to="/workers">
              Workers
            </Link>
          </p>
        </Step>
        <Step number={2} title="Run something" isDone={false} isNow>
          <p className="mut">It needs no API key: the model runbook runs the shell blocks of the prompt as they are.</p>
          <CommandBlock command="bin/runyard run examples/hello.md" />
          <div className="row">
            <RoleButton needs="member" className="btn pri" run={() => void start()}>
              <Icon name="play" small />
              Run it now
            </RoleButton>
            <Link className="btn" to="/runs/new" search={{ prompt: firstPrompt }}>
              Change it first
            </Link>
          </div>
          <Problem error={error} />
        </Step>
        <Step number={3} title="Add a language model" isDone={hasModel} isNow={false}>
          <p className="mut">
            Keys of providers are settings of the service, so this page cannot set them. Set one, then start the service
            again.
          </p>
          <CommandBlock command="export RUNYARD_ANTHROPIC_API_KEY=…   # or RUNYARD_OPENAI_API_KEY, RUNYARD_GOOGLE_API_KEY" />
          <CommandBlock command="export RUNYARD_MODEL_BASE_URL=http://127.0.0.1:11434/v1   # your own: Ollama, vLLM, llama.cpp" />
        </Step>
        <Step number={4} title="Bring your team and your events" isDone={false} isNow={false}>
          <p className="row wrap">
            <Link className="btn" to="/settings/$tab" params={{ tab: 'members' }}>
              Invite a person
            </Link>
            <Link className="btn" to="/factories">
              Create a webhook
            </Link>
            <Link className="btn" to="/schedules" search={{ new: 'true' }}>
              Create a schedule
            </Link>
          </p>
        </Step>
      </ol>
    </div>
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
    <li className="step">
      <span className={`num-dot ${isDone ? 'done' : isNow ? 'now' : 'next'}`}>
        {isDone ? <Icon name="check" small /> : number}
      </span>
      <h2 className={isDone || isNow ? '' : 'dim'}>{title}</h2>
      <div className="body">{children}</div>
    </li>
  );
}
