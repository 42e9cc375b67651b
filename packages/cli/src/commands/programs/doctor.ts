import { httpUrl } from '@runyard/contract/settings/setting';
import { type Command, Option } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { type Finding, renderFindings } from '../../doctor/finding.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson } from '../../input/options.ts';
import { findUnits, type InstalledUnit, type ProgramName, runInUnit } from '../../machine/installed-units.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';

interface DoctorOptions {
  readonly json?: true;
  /** URL of a service. If it is set, this service is checked from the outside, and this machine is not checked. */
  readonly url?: string;
  /** The program whose needs are checked. Absent: those of the programs that systemd runs here, or else of both. */
  readonly only?: ProgramName;
}

async function findingsOf(context: Context, { url, only }: DoctorOptions): Promise<Finding[]> {
  if (url !== undefined) {
    const reading = httpUrl(url.replace(/\/api\/v1\/?$/, ''));
    if ('problem' in reading) throw new Failure(`--url ${reading.problem}`, 2);
    const { checkFromOutside } = await import('../../doctor/from-outside.ts');
    return await checkFromOutside(reading.value, context.settings.RUNYARD_API_KEY);
  }
  const units = only === undefined ? findUnits(context.env) : [];
  if (units.length > 0) return (await Promise.all(units.map(askUnit))).flat();
  // Imports the checks only here, because they import large parts of the service and the worker.
  const { runChecks } = await import('../../doctor/checks.ts');
  return await runChecks(context, only);
}

/** Lets doctor check a program with the settings and the user of its unit. */
async function askUnit(unit: InstalledUnit): Promise<Finding[]> {
  const { stdout, stderr } = await runInUnit(unit, ['doctor', '--json', '--only', unit.program], 'pipe');
  const heading: Finding = { name: 'unit', level: 'fact', detail: `${unit.name} of systemd, as the user ${unit.user}` };
  try {
    return [heading, ...(JSON.parse(stdout) as { readonly findings: Finding[] }).findings];
  } catch {
    const detail = harmlessLine(stderr.trim() || `doctor gave no answer in the unit ${unit.name}`, 2_000);
    return [heading, { name: 'settings', level: 'bad', detail }];
  }
}

const endings = {
  here: ['A run works here: bin/runyard run examples/hello.md', 'No run works here until you fix the lines with ✗.'],
  outside: ['The service works from here.', 'Something does not work from here until you fix the lines with ✗.'],
} as const;

/**
 * Prints the results, and how to fix problems. The exit code is 0 if no result prevents runs (or, with a URL, the use of the service from
 * here), and otherwise 1.
 */
export async function doctor(context: Context, options: DoctorOptions): Promise<void> {
  const findings = await findingsOf(context, options);
  const works = findings.every((finding) => finding.level !== 'bad');
  if (!works) process.exitCode = 1;
  if (options.json) {
    context.out(`${harmlessJson({ works, findings })}\n`);
    return;
  }
  context.out(renderFindings(findings, context.colours));
  const [good, bad] = endings[options.url === undefined ? 'here' : 'outside'];
  context.out(`\n${works ? good : bad}\n`);
}

/** Declares the command `doctor`. */
export function declareDoctor(command: Command): void {
  command
    .addOption(new Option('--only <program>', 'check only what this program needs').choices(['service', 'worker']))
    .option('--url <url>', 'check the service at this URL, and the proxy in front of it, from the outside')
    .option(...asJson)
    .action((options) => doctor(processContext(), options));
}
