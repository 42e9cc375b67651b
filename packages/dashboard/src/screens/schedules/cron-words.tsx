import { useEffect, useState } from 'react';
import { Text } from '../../parts/blocks.tsx';

/**
 * Describes in words when a cron expression fires. Shows the expression itself until the code that describes it is loaded, and if this
 * code has no description for it.
 */
export function CronWords({ cron, timezone }: { cron: string; timezone: string | undefined }) {
  const [words, setWords] = useState<string | undefined>();
  useEffect(() => {
    let isGone = false;
    void import('cronstrue').then(({ default: cronstrue }) => {
      if (isGone) return;
      try {
        setWords(cron.startsWith('@') ? undefined : cronstrue.toString(cron, { use24HourTimeFormat: true }));
      } catch {
        setWords(undefined);
      }
    });
    return () => {
      isGone = true;
    };
  }, [cron]);
  return (
    <span title={cron}>
      {words ?? <code>{cron}</code>}
      {timezone && timezone !== 'UTC' && <Text tone="dim">{`, ${timezone}`}</Text>}
    </span>
  );
}
