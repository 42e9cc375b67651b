import type { WaitingContent } from '@runyard/contract/runs/acceptances';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visible, visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { useTeamEvents, useTeamStreamStatus } from '../../api/stream.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { Live } from '../../parts/live.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago, Lasting } from '../../parts/time.tsx';

const route = getRouteApi('/shell/needs-answer');

/** The inbox of a person: runs of the team that wait for an answer, and revisions that wait for the person's acceptance. */
export function NeedsAnswerScreen() {
  const tab = oneOf(route.useSearch({ select: ({ tab: name }) => name })) ?? 'runs';
  const status = useTeamStreamStatus();
  const mayAccept = useMay('member');
  const { data: runs, error, refetch } = useBlockedRuns();
  const { data: waiting, error: waitingError } = useWaitingContents();
  return (
    <Page
      title="Needs answer"
      status={<Live status={status} />}
      actions={<AskForNotifications />}
      tabs={
        <nav className="tabs" aria-label="Kinds">
          <Link
            to="/needs-answer"
            search={{}}
            activeOptions={{ exact: true }}
            aria-current={tab === 'runs' ? 'page' : undefined}
          >
            Runs that ask {runs && runs.length > 0 && <span className="n ask">{runs.length}</span>}
          </Link>
          {mayAccept && (
            <Link
              to="/needs-answer"
              search={{ tab: 'acceptances' }}
              activeOptions={{ exact: true }}
              aria-current={tab === 'acceptances' ? 'page' : undefined}
            >
              Revisions to accept {waiting && waiting.length > 0 && <span className="n ask">{waiting.length}</span>}
            </Link>
          )}
        </nav>
      }
    >
      <div className="pad stack">
        {tab === 'acceptances' && mayAccept ? (
          <>
            <Problem error={waitingError} />
            {waiting?.length === 0 && (
              <Empty title="Nothing waits for your acceptance">
                Your runs execute environments, schedules and other contents that people of your team write. What others
                have written since you accepted it last is listed here.
              </Empty>
            )}
            {waiting?.map((content) => (
              <Revision key={`${content.kind}/${content.uid}`} content={content} />
            ))}
          </>
        ) : (
          <>
            <Problem error={error} onRetry={() => void refetch()} />
            {runs === undefined && !error && <SkeletonRows count={4} />}
            {runs?.length === 0 && (
              <Empty title="No run asks anything" command="bin/runyard run --approval ask '…'">
                A run whose approval policy is ask waits here before each command and each change of a file.
              </Empty>
            )}
            {runs?.map((run) => (
              <Question key={run.run_id} run={run} />
            ))}
          </>
        )}
      </div>
    </Page>
  );
}

function useBlockedRuns() {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const key = ['blocked', team.uid];
  useTeamEvents(
    (event) => {
      if (event.type === 'state') void queries.invalidateQueries({ queryKey: key });
    },
    () => void queries.invalidateQueries({ queryKey: key }),
  );
  return useQuery({
    queryKey: key,
    queryFn: async () =>
      (await client.listRuns({ query: { state: ['BLOCKED'], view: 'summary', limit: 100, sort_order: 'asc' } })).runs,
  });
}

function useWaitingContents() {
  const client = useClient();
  const { team } = useSession();
  return useQuery({
    queryKey: ['acceptances', team.uid],
    queryFn: async () => (await client.listAcceptances({})).waiting,
    enabled: useMay('member'),
  });
}

function Question({ run }: { run: RunItem }) {
  return (
    <article className="card">
      <div className="card-h">
        <StateBadge state={run.state} />
        <Link className="md cut grow" to="/runs/$runId" params={{ runId: run.run_id }}>
          {visibleText(run.title)}
        </Link>
        <span className="small waitc">
          waits <Lasting from={run.blocked_on?.asked_at ?? run.updated_at} to={undefined} />
        </span>
      </div>
      <div className="card-b row top">
        <code className="grow">{visibleText(run.blocked_on?.title ?? '')}</code>
        <Link className="btn pri" to="/runs/$runId" params={{ runId: run.run_id }}>
          Answer
        </Link>
      </div>
    </article>
  );
}

/** Returns the names of the authors whose texts wait. */
const authorsOf = ({ authors }: WaitingContent): string =>
  authors.map(({ display_name, uid }) => visibleText(display_name ?? uid ?? '')).join(', ') || 'an unknown author';

function Revision({ content }: { content: WaitingContent }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const { error, attempt, isBusy } = useAttempts();
  const accept = async () => {
    await attempt(async () => {
      const { kind, uid, revision } = content;
      await client.accept({ body: { kind, uid, revision } });
      await queries.invalidateQueries({ queryKey: ['acceptances', team.uid] });
      await queries.invalidateQueries({ queryKey: ['waiting', team.uid] });
    });
  };
  return (
    <article className="card">
      <div className="card-h">
        <Icon name="lock" small />
        <span className="md cut">{visibleText(content.name ?? content.uid)}</span>
        <span className="tag">{content.kind.replaceAll('_', ' ')}</span>
        <span className="dim small right">
          {`revision ${content.revision} with texts of ${authorsOf(content)}, `}
          <Ago time={content.written_at} />
        </span>
      </div>
      <div className="card-b stack s2">
        <p className="mut">
          {content.accepted_revision === undefined
            ? 'You have not accepted any revision of it. These are its texts of others.'
            : `Differences from revision ${content.accepted_revision} in the texts that wait for you.`}
        </p>
        {content.difference === undefined ? (
          <p className="mut">The difference is too long for this list.</p>
        ) : (
          <table className="tbl in-card">
            <thead>
              <tr>
                <th className="w200">Member</th>
                <th>Before</th>
                <th>Now</th>
              </tr>
            </thead>
            <tbody>
              {content.difference.map(({ path, before, after }) => (
                <tr key={path}>
                  <td className="mono">{visibleText(path)}</td>
                  <td>{before === undefined ? <span className="dim">none</span> : <WholeValue value={before} />}</td>
                  <td>{after === undefined ? <span className="dim">none</span> : <WholeValue value={after} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <Problem error={error} />
        <div className="row">
          <button
            type="button"
            className="btn pri"
            disabled={isBusy || content.difference === undefined}
            onClick={() => void accept()}
          >
            Accept this revision
          </button>
          <span className="hint">Your later runs execute it with all your rights.</span>
        </div>
      </div>
    </article>
  );
}

/** Shows a value without folding any part, because a person decides whether to accept the whole value. */
const WholeValue = ({ value }: { value: unknown }) => (
  <pre className="whole-value">{visible(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}</pre>
);

/** Shows a button that asks the browser to allow notifications, which the shell then shows while the page is hidden. */
function AskForNotifications() {
  const [permission, setPermission] = useState(
    typeof Notification === 'undefined' ? 'denied' : Notification.permission,
  );
  if (permission !== 'default') return null;
  return (
    <button type="button" className="btn" onClick={() => void Notification.requestPermission().then(setPermission)}>
      <Icon name="bell" small />
      Notify me
    </button>
  );
}
