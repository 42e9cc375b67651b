import { visibleText } from '@runyard/contract/wire/visible';
import { type Failure, failureOf } from '../api/problem.ts';
import { isSignedOut } from '../api/session.ts';
import { CopyButton } from './copy.tsx';
import { Icon } from './icon.tsx';
import { useNow } from './time.tsx';

/** Shows the reason why a request failed, and the next step. `onRetry` adds a button if a repeated request may succeed. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (error === null || error === undefined) return null;
  const failure: Failure = failureOf(error);
  return (
    <div className="note bad" role="alert">
      <Icon name="warn" />
      <div className="stack s1 grow">
        <p>{isSignedOut(error) ? 'Your session has ended.' : visibleText(failure.detail)}</p>
        {[...failure.members].map(([path, { message }]) => (
          <p key={path} className="small">
            <code>{visibleText(path)}</code> {visibleText(message)}
          </p>
        ))}
        <p className="row wrap small mut">
          {failure.title}
          {failure.actionUrl && (
            <a className="link" href={failure.actionUrl} rel="noreferrer" target="_blank">
              {failure.actionUrl}
            </a>
          )}
          {failure.helpPath && (
            <a className="link" href={failure.helpPath}>
              About this error
            </a>
          )}
          {failure.traceId && <CopyButton text={failure.traceId} what={`Copy trace id ${failure.traceId}`} />}
        </p>
      </div>
      {isSignedOut(error) && (
        <a className="btn sm" href={`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`}>
          Sign in
        </a>
      )}
      {onRetry && failure.isRetryable && <Retry run={onRetry} at={failure.retryAt} />}
    </div>
  );
}

/** Repeats the request. Counts down to the time `at`, because the service refuses the request until then. */
function Retry({ run, at = 0 }: { run: () => void; at: number | undefined }) {
  const seconds = Math.ceil((at - useNow()) / 1000);
  return (
    <button type="button" className="btn sm" disabled={seconds > 0} onClick={run}>
      {seconds > 0 ? `Try again in ${seconds} s` : 'Try again'}
    </button>
  );
}
