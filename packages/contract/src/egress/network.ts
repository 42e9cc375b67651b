import { z } from 'zod';
import { maxAllowedHosts } from '../limits.ts';
import { AllowedHost } from './allowed-host.ts';
import { networkPresetNames, networkPresets } from './presets.ts';

/** Package managers whose registries an environment can allow. */
const NetworkPreset = z
  .enum(networkPresetNames)
  .meta({ id: 'NetworkPreset', description: 'Package managers whose public registries can be allowed by name' });

/** Hosts that the sandboxes of an environment may reach. */
export const EnvironmentNetwork = z
  .object({
    allowed_hosts: z
      .array(AllowedHost)
      .max(maxAllowedHosts)
      .nullable()
      .optional()
      .describe(
        `Hosts, at most ${maxAllowedHosts}: \`example.com\`, or \`*.example.com\` for all names below it and not itself, or an IP address. Without \`:port\`, 443 and 80 are allowed. Private addresses are denied unless the operator of the worker allows them`,
      ),
    presets: z
      .array(NetworkPreset)
      .max(networkPresetNames.length)
      .nullable()
      .optional()
      .describe('Package managers whose public registries are also allowed'),
  })
  .meta({
    id: 'EnvironmentNetwork',
    description:
      'Hosts that a sandbox may reach, through the proxy in its variables HTTPS_PROXY and HTTP_PROXY. Absent or empty: none. A worker may allow fewer',
  });
export type EnvironmentNetwork = z.infer<typeof EnvironmentNetwork>;

/** Returns the host rules of an environment and of its presets, without duplicates. */
export function allowedHostsOf(network: EnvironmentNetwork | null | undefined): string[] {
  const ofPresets = (network?.presets ?? []).flatMap((name) => networkPresets[name].hosts);
  return [...new Set([...(network?.allowed_hosts ?? []), ...ofPresets])];
}
