import type { RunItem } from '@runyard/contract/runs/runs';
import { Count, P, Row, Text } from '../../parts/blocks.tsx';
import { costText, dollarText, numberText } from '../../parts/format.ts';
import { Meter } from '../../parts/meter.tsx';
import styles from './facts.module.css';

/** Shows the cost of a run with its parts, and its share of the limit. */
export function Cost({ run }: { run: RunItem }) {
  const usage = run.request_usage;
  const usd = usage?.inference_cost_usd;
  const limit = run.agent_config?.max_cost_usd;
  const parts = usage?.inference_cost_breakdown_usd;
  const rows: readonly (readonly [string, number | undefined])[] = parts
    ? [
        ['Read', parts.input_cost_usd],
        ['From cache', parts.input_cache_read_cost_usd],
        ['To cache', parts.input_cache_write_cost_usd],
        ['Written', parts.output_cost_usd],
        ["Provider's tools", parts.provider_tools_cost_usd],
      ]
    : [];
  return (
    <div className={styles.section}>
      <h2>Cost {limit !== undefined && <Count right>{`of the limit of ${dollarText(limit)}`}</Count>}</h2>
      {usage === undefined ? (
        <P tone="muted">No model was asked.</P>
      ) : (
        <>
          <Row>
            <Text bold>{costText(usage)}</Text>
            {limit !== undefined && usd !== undefined && limit > 0 && (
              <>
                <Meter value={usd} of={limit} label="of the limit" />
                <Text tone="dim">{`${Math.round((usd / limit) * 100)}%`}</Text>
              </>
            )}
            {usage.total_tokens !== undefined && (
              <Text tone="dim" right>{`${numberText(usage.total_tokens)} tokens`}</Text>
            )}
          </Row>
          {rows.length > 0 && (
            <table className={styles.tokens}>
              <tbody>
                {rows.map(
                  ([name, value]) =>
                    value !== undefined && (
                      <tr key={name}>
                        <td>{name}</td>
                        <td>{dollarText(value)}</td>
                      </tr>
                    ),
                )}
              </tbody>
            </table>
          )}
        </>
      )}
    </div>
  );
}
