"""Plugins to start from, a folder per kind; `plugin_name`, `plugin-name` and `PluginName` become the name asked for."""
