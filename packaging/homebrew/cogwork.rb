# Filled in by packaging/tap.py.
class @CLASS@ < Formula
  include Language::Python::Virtualenv

  desc "Machine server: one JSON file becomes a running machine"
  homepage "https://OWNER.github.io/cogwork/"
  url "@URL@"
  sha256 "@SHA256@"
  license "Apache-2.0"
@KEG_ONLY@
  depends_on "python@3.12"

  def install
    python = Formula["python@3.12"].opt_libexec/"bin/python"
    virtualenv_create(libexec, python)
    system python, "-m", "pip", "--python=#{libexec}/bin/python", "install", "#{buildpath}[camera,onnx]"
    %w[cogwork cogwork-server cogwork-cloud].each { |name| bin.install_symlink libexec/"bin"/name }
    man1.install_symlink Dir[libexec/"share/man/man1/*.1"]
    generate_completions_from_executable(bin/"cogwork", "completion")
  end

  def post_install
    config = etc/"cogwork.json"
    return if config.exist?

    config.write "{\n  \"components\": [],\n  \"services\": []\n}\n"
    config.chmod 0600
  end

  service do
    run [opt_bin/"cogwork-server", "-config", etc/"cogwork.json"]
    environment_variables COGWORK_HOME: var/"lib/cogwork"
    keep_alive true
    log_path var/"log/cogwork-server.log"
    error_log_path var/"log/cogwork-server.log"
  end

  test do
    (testpath/"machine.json").write "{\"components\": []}"
    system bin/"cogwork", "config", "check", "machine.json"
    assert_match version.to_s, shell_output("#{bin}/cogwork-server -version")
  end
end
