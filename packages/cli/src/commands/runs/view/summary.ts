/** Renders the summary of an ended run: the state, the artifacts, the usage and the URL of the run's page. */

import type { ArtifactItem } from '@runyard/contract/runs/artifacts';
import type { RunItem } from '@runyard/contract/runs/runs';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { parseIsoDuration } from '@runyard/contract/wire/iso-duration';
import { formatCount, formatDuration, formatUsd } from '../../../terminal/amounts.ts';
import type { Colours } from '../../../terminal/colours.ts';
import { harmless, harmlessJson, harmlessLine, harmlessLines } from '../../../terminal/harmless.ts';
import { answerLines, questionLine } from './question.ts';

export interface SummaryArtifact {
  readonly item: ArtifactItem;
  /** Signed URL of the artifact's bytes. Absent for artifacts that are links or text. */
  readonly downloadUrl?: string;
}

export function renderSummary(run: RunItem, artifacts: readonly SummaryArtifact[], colours: Colours): string {
  const lines = ['', verdict(run, colours)];
  if (run.status_message && run.state !== 'BLOCKED') {
    const code = run.status_message.error_code ? `${run.status_message.error_code}: ` : '';
    for (const text of harmless(`${code}${run.status_message.message}`).trimEnd().split('\n')) lines.push(`  ${text}`);
  }
  if (run.blocked_on) {
    lines.push(`  ${harmlessLines(questionLine(run, run.blocked_on), 300)}`);
    for (const text of answerLines(run.run_id, run.blocked_on.kind, colours)) lines.push(`  ${text}`);
  }
  if ('result' in run) lines.push(...resultLines(run.result, colours));
  for (const artifact of artifacts) {
    lines.push(
      `  ${colours.dim('artifact')}  ${describeArtifact(artifact.item)}${artifact.downloadUrl ? `\n            ${colours.cyan(harmlessLine(artifact.downloadUrl, 2000))}` : ''}`,
    );
  }
  const usage = describeUsage(run);
  if (usage) lines.push(`  ${colours.dim('usage')}     ${usage}`);
  if (run.session_link)
    lines.push(`  ${colours.dim('page')}      ${colours.cyan(harmlessLine(run.session_link, 2000))}`);
  return `${lines.join('\n')}\n`;
}

/** Maximum number of lines of a result in the summary. The command `runs result` shows the whole result. */
const maxResultLines = 40;

function resultLines(result: unknown, colours: Colours): string[] {
  const lines = harmlessJson(result, 2).split('\n');
  const shown = lines.slice(0, maxResultLines).map((line) => `    ${line}`);
  const more =
    lines.length > maxResultLines ? [`    ${colours.dim(`… ${lines.length - maxResultLines} more lines`)}`] : [];
  return [`  ${colours.dim('result')}`, ...shown, ...more];
}

function verdict(run: RunItem, colours: Colours): string {
  const milliseconds = run.run_time === undefined ? undefined : parseIsoDuration(run.run_time);
  const took = milliseconds === undefined ? '' : colours.dim(` in ${formatDuration(milliseconds)}`);
  switch (run.state) {
    case 'SUCCEEDED':
      return `${colours.green('✓')} ${colours.bold('SUCCEEDED')}${took}`;
    case 'CANCELLED':
      return `${colours.yellow('■')} ${colours.bold('CANCELLED')}${took}`;
    case 'BLOCKED':
      return `${colours.yellow('?')} ${colours.bold('BLOCKED')}${colours.dim(': the agent waits for a person')}`;
    default:
      return `${colours.red('✗')} ${colours.bold(run.state)}${took}`;
  }
}

function describeArtifact(item: ArtifactItem): string {
  switch (item.artifact_type) {
    case 'FILE': {
      const size = item.data.size_bytes === undefined ? '' : ` (${formatBytes(item.data.size_bytes)})`;
      const about = item.data.title ?? item.data.description;
      return `${harmlessLine(item.data.filename)}${size}${about ? `: ${harmlessLine(about)}` : ''}`;
    }
    case 'SCREENSHOT':
      return `screenshot${item.data.description ? `: ${harmlessLine(item.data.description)}` : ''}`;
    case 'PLAN':
      return `plan${item.data.title ? `: ${harmlessLine(item.data.title)}` : ''}`;
    case 'PULL_REQUEST':
      return `pull request ${harmlessLine(item.data.url, 2000)} (branch ${harmlessLine(item.data.branch)})${item.data.status === 'unknown' ? '' : `, ${item.data.status}`}`;
    case 'EXTERNAL_REFERENCE':
      return `${harmlessLine(item.data.title ?? item.data.reference_type)}: ${harmlessLine(item.data.url, 2000)}`;
  }
}

function describeUsage(run: RunItem): string {
  const usage = run.request_usage;
  const tokens = usage?.total_tokens;
  if (!usage || !tokens) return '';
  const usd = usage.inference_cost_usd;
  return `${formatCount(tokens)} tokens${usd === undefined ? '' : `, ${formatUsd(usd)}`}`;
}
