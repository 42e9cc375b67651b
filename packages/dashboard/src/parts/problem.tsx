import { visibleText } from '@runyard/contract/wire/visible';
import { type Failure, failureOf } from '../api/problem.ts';
import { isSignedOut } from '../api/session.ts';
import { Note, P, Row, Stack, Text } from './blocks.tsx';
import { Button, ButtonAnchor } from './controls.tsx';
import { CopyButton } from './copy.tsx';
import { Icon } from './icon.tsx';
import { useNow } from './time.tsx';

/** Shows the reason why a request failed, and the next step. `onRetry` adds a button if a repeated request may succeed. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (error === null || error === undefined) return null;
  const failure: Failure = failureOf(error);
  return (
    <Note tone="bad" role="alert">
      <Icon name="warn" />
      <Stack gap={1} grow>
        <p>{isSignedOut(error) ? 'Your session has ended.' : visibleText(failure.detail)}</p>
        {[...failure.members].map(([path, { message }]) => (
          <P key={path} small>
            <code>{visibleText(path)}</code> {visibleText(message)}
          </P>
        ))}
        <Row as="p" tone="muted" wrap small>
          {failure.title}
          {failure.actionUrl && (
            <Text as="a" link href={failure.actionUrl} rel="noreferrer" target="_blank">
              {failure.actionUrl}
            </Text>
          )}
          {failure.helpPath && (
            <Text as="a" link href={failure.helpPath}>
              About this error
            </Text>
          )}
          {failure.traceId && <CopyButton text={failure.traceId} what={`Copy trace id ${failure.traceId}`} />}
        </Row>
      </Stack>
      {isSignedOut(error) && (
        <ButtonAnchor small href={`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`}>
          Sign in
        </ButtonAnchor>
      )}
      {onRetry && failure.isRetryable && <Retry run={onRetry} at={failure.retryAt} />}
    </Note>
  );
}

/** Repeats the request. Counts down to the time `at`, because the service refuses the request until then. */
function Retry({ run, at = 0 }: { run: () => void; at: number | undefined }) {
  const seconds = Math.ceil((at - useNow()) / 1000);
  return (
    <Button small disabled={seconds > 0} onClick={run}>
      {seconds > 0 ? `Try again in ${seconds} s` : 'Try again'}
    </Button>
  );
}
