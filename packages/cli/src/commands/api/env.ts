import { apiPrefix } from '@runyard/contract/wire/route';
import { type Command, Option } from 'commander';
import { type Context, processContext, requireApiKey, requireOrigin } from '../../context/context.ts';
import { asJson } from '../../input/options.ts';
import { requireSameSettings } from '../../service/same-settings.ts';
import { addressSettings } from '../../supervise/running-settings.ts';
import { shellQuote } from '../../terminal/curl-example.ts';

/** The command can write the variables in the syntax of these shells. */
const shells = ['sh', 'fish'] as const;

/**
 * Prints environment variables with the address and the key of the service, for this command, for curl and for the published clients.
 *
 * ```sh
 * eval "$(bin/runyard env)"
 * curl -H "Authorization: Bearer $RUNYARD_API_KEY" "$RUNYARD_BASE_URL/api/v1/agent/runs"
 * ```
 */
function printEnvironment(
  context: Context,
  options: { readonly shell: (typeof shells)[number]; readonly json?: true },
): void {
  requireSameSettings(context, addressSettings);
  const origin = requireOrigin(context);
  const key = requireApiKey(context);
  const variables = {
    RUNYARD_BASE_URL: origin,
    RUNYARD_API_KEY: key,
    // Environment variables that the published clients read: oz-agent-sdk, and then warp-platform-sdk.
    OZ_API_BASE_URL: `${origin}${apiPrefix}`,
    WARP_BASE_URL: `${origin}${apiPrefix}`,
    WARP_API_KEY: key,
  };
  if (options.json) {
    context.out(`${JSON.stringify(variables)}\n`);
    return;
  }
  for (const [name, value] of Object.entries(variables)) {
    const line = {
      sh: `export ${name}=${shellQuote(value)}`,
      // Inside single quotes, fish interprets only the escapes \\ and \'.
      fish: `set -gx ${name} '${value.replaceAll(/[\\']/g, '\\$&')}'`,
    }[options.shell];
    context.out(`${line}\n`);
  }
}

/** Declares the command `env`. */
export function declareEnv(command: Command): void {
  command
    .addOption(new Option('--shell <shell>', 'whose syntax').choices(shells).default('sh'))
    .option(...asJson)
    .addHelpText('after', '\nFor this shell and its programs: eval "$(bin/runyard env)"')
    .action((options) => printEnvironment(processContext(), options));
}
