/** Names of the presets. */
export const networkPresetNames = ['npm', 'pip', 'apt', 'cargo', 'go', 'maven', 'gradle', 'gem', 'composer'] as const;
export type NetworkPresetName = (typeof networkPresetNames)[number];

/** Hosts from which a package manager installs packages. An environment can allow all of them with one name. */
interface NetworkPreset {
  /** Host rules in the same form as in `allowed_hosts`. */
  readonly hosts: readonly string[];
  /** Address of the page that documents these hosts. */
  readonly source: string;
}

/**
 * The hosts of the public registries. A program in a sandbox can send data to a registry that it reaches, if it has the credential of
 * a person who may publish packages there.
 */
export const networkPresets: Readonly<Record<NetworkPresetName, NetworkPreset>> = {
  npm: {
    hosts: ['registry.npmjs.org:443', 'registry.yarnpkg.com:443'],
    source: 'https://docs.npmjs.com/cli/using-npm/registry',
  },
  pip: {
    hosts: ['pypi.org:443', 'files.pythonhosted.org:443'],
    source: 'https://docs.pypi.org/api/',
  },
  apt: {
    hosts: ['deb.debian.org', 'security.debian.org', 'archive.ubuntu.com', 'security.ubuntu.com', 'ports.ubuntu.com'],
    source: 'https://wiki.debian.org/SourcesList',
  },
  cargo: {
    // The last host has the toolchains that rustup installs.
    hosts: ['index.crates.io:443', 'static.crates.io:443', 'crates.io:443', 'static.rust-lang.org:443'],
    source: 'https://doc.rust-lang.org/cargo/reference/registry-index.html',
  },
  // The Go module proxy redirects requests for large modules to this storage.
  go: {
    hosts: ['proxy.golang.org:443', 'sum.golang.org:443', 'storage.googleapis.com:443'],
    source: 'https://proxy.golang.org/',
  },
  maven: {
    hosts: ['repo.maven.apache.org:443', 'repo1.maven.org:443'],
    source: 'https://maven.apache.org/guides/mini/guide-mirror-settings.html',
  },
  // The distributions of the wrapper come from the first two hosts, which redirect to the releases on GitHub.
  gradle: {
    hosts: [
      'services.gradle.org:443',
      'downloads.gradle.org:443',
      'plugins.gradle.org:443',
      'plugins-artifacts.gradle.org:443',
      'github.com:443',
      'release-assets.githubusercontent.com:443',
      'repo.maven.apache.org:443',
      'repo1.maven.org:443',
    ],
    source: 'https://docs.gradle.org/current/userguide/gradle_wrapper.html',
  },
  gem: {
    hosts: ['rubygems.org:443', 'index.rubygems.org:443', 'fastly.rubygems.org:443'],
    source: 'https://guides.rubygems.org/rubygems-org-api/',
  },
  // Packages are archives of their repositories on GitHub.
  composer: {
    hosts: ['repo.packagist.org:443', 'packagist.org:443', 'api.github.com:443', 'codeload.github.com:443'],
    source: 'https://getcomposer.org/doc/05-repositories.md',
  },
};
