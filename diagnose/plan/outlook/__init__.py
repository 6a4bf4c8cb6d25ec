"""outlook"""
